import { useMay } from '@/session'
import type { Role } from '@/api'
import { CardChoice } from '@/ui/Choice'
import { ROLES } from './roles'

/** Only owners make owners. */
export function RoleField({ value, onChange }: { value: Role; onChange: (role: Role) => void }) {
  const mayMakeOwners = useMay('own')
  const options = ROLES.filter(({ role }) => role !== 'owner' || mayMakeOwners).map(({ role, label, about }) => ({
    value: role,
    label,
    description: about,
  }))
  return <CardChoice legend="Role" value={value} options={options} onChange={onChange} />
}
