import { Link } from '@tanstack/react-router'

/** An organization in sentences and tables of the console: the way to its page. */
export function OrganizationLink({ id, name }: { id: string; name: string }) {
  return (
    <Link
      to="/operator/organizations/$organizationId"
      params={{ organizationId: id }}
      className="font-medium break-words underline decoration-line-strong underline-offset-4 hover:decoration-current"
    >
      {name}
    </Link>
  )
}
