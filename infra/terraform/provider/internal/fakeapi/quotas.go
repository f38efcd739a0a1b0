package fakeapi

// OrganizationID is the only organization.
const OrganizationID = "01990000-0000-7000-8000-00000000c0de"

var quotaDefaults = object{"projects": 10, "groups_per_project": 100}

func (f *API) quotasOf(organization string) (int, any) {
	if organization != OrganizationID {
		return problem(404, "not_found", "No such organization.", nil)
	}
	items := []any{}
	for code, byDefault := range quotaDefaults {
		limit, isSet := f.quotas[code]
		if !isSet {
			limit = byDefault
		}
		items = append(items, object{
			"code": code, "description": code, "limit": limit, "used": 3, "unit": "projects", "is_default": !isSet,
			"requested": f.requestedQuotas[code],
		})
	}
	return 200, object{"items": items}
}

func (f *API) setQuota(organization, code string, limit any) (int, any) {
	if organization == OrganizationID && quotaDefaults[code] == nil {
		return problem(404, "not_found", "No such quota.", nil)
	}
	if organization == OrganizationID {
		f.quotas[code] = limit
		delete(f.requestedQuotas, code)
	}
	return f.quotasOf(organization)
}

func (f *API) resetQuota(organization, code string) (int, any) {
	delete(f.quotas, code)
	return f.quotasOf(organization)
}

// RequestQuota as the organization's members do.
func (f *API) RequestQuota(code string, wanted int) {
	f.with(func() { f.requestedQuotas[code] = wanted })
}

// ResetQuotas without Terraform.
func (f *API) ResetQuotas() { f.with(func() { clear(f.quotas) }) }

// Quotas that are set in place of defaults.
func (f *API) Quotas() (count int) {
	f.with(func() { count = len(f.quotas) })
	return count
}
