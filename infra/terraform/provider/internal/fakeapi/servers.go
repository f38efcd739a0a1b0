package fakeapi

// Drain a server, as an operator does without Terraform.
func (f *API) Drain(name string) {
	f.with(func() {
		f.servers[name]["draining"] = true
		f.servers[name]["drain"] = object{
			"state": "draining", "since": now(), "drained_at": nil, "moving": 1, "waiting": 1, "scarce_resource": nil,
			"message": "Replicas are left.",
		}
	})
}

// Drains counts the servers that are being drained.
func (f *API) Drains() (count int) {
	f.with(func() {
		for _, server := range f.servers {
			if server["draining"] == true {
				count++
			}
		}
	})
	return count
}
