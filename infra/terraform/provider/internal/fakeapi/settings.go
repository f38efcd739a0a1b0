package fakeapi

func (f *API) renameProject(id string, asked object) (int, any) {
	known := f.projects[id]
	if known == nil {
		return problem(404, "not_found", "No such project.", nil)
	}
	for other, project := range f.projects {
		if other != id && project["name"] == asked["name"] {
			return nameTaken()
		}
	}
	known["name"] = asked["name"]
	return 200, known
}

func (f *API) settleGroup(id string, asked object) (int, any) {
	known := f.groups[id]
	if known == nil {
		return problem(404, "not_found", "No such group.", nil)
	}
	for other, group := range f.groups {
		if other != id && group["project_id"] == known["project_id"] && group["name"] == asked["name"] {
			return nameTaken()
		}
	}
	known["name"], known["deletion_protection"] = asked["name"], asked["deletion_protection"] == true
	return 200, known
}

func (f *API) deleteGroup(id string) (int, any) {
	if known := f.groups[id]; known != nil && known["deletion_protection"] == true {
		return problem(409, "deletion_protected", "The group is protected.", nil)
	}
	return remove(f.groups, id)
}

func nameTaken() (int, any) {
	field := object{"field": "name", "message": "Another one has this name."}
	return problem(409, "name_taken", "Another one has this name.", object{"errors": []any{field}})
}
