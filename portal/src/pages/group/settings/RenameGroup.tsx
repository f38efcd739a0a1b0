import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, groupQuery, keys, type Group } from '@/api'
import { Button } from '@/ui/Button'
import { Rename } from '@/ui/Rename'

export function RenameGroup({ group }: { group: Group }) {
  const [open, setOpen] = useState(false)
  const queries = useQueryClient()
  const rename = async (name: string) => {
    const changed = await api.settleGroup(group.id, { name, deletion_protection: group.deletion_protection === true })
    queries.setQueryData(groupQuery(group.id).queryKey, changed)
    void queries.invalidateQueries({ queryKey: keys.groups(group.project_id) })
  }
  return (
    <>
      <Button variant="quiet" size="small" aria-label={`Rename ${group.name}`} onClick={() => setOpen(true)}>
        Rename
      </Button>
      {open && (
        <Rename
          name={group.name}
          description="The log and its clients are not touched. Keys whose scopes name groups see it by its new name alone."
          rename={rename}
          onClose={() => setOpen(false)}
        />
      )}
    </>
  )
}
