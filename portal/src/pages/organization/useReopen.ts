import { useMutation, useQueryClient } from '@tanstack/react-query'
import { api } from '@/api'

/** Calls off the closing. Everything is read again: groups, too, change with it. */
export function useReopen() {
  const queries = useQueryClient()
  return useMutation({ mutationFn: api.reopenOrganization, onSuccess: () => queries.invalidateQueries() })
}
