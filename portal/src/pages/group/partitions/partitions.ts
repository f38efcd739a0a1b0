export const PARTITIONS_MAX = 256

/** The number in the field, or what is wrong with it. */
export function partitionsOf(text: string, present: number, ratePerS: number): { count: number } | { problem: string } {
  const trimmed = text.trim()
  if (!/^\d{1,4}$/.test(trimmed)) return { problem: 'Enter a whole number.' }
  const count = Number(trimmed)
  if (count > PARTITIONS_MAX) return { problem: `At most ${PARTITIONS_MAX}.` }
  if (count <= present) return { problem: `More than the ${present} that there ${present === 1 ? 'is' : 'are'}.` }
  if (count > ratePerS) return { problem: 'At most as many as the group reserves appends a second.' }
  return { count }
}

/** Whether clients would append clearly more than the partition has. */
export function wantsMore(partition: { wanted_per_s: number | null; rate_per_s: number }): boolean {
  return partition.wanted_per_s !== null && partition.wanted_per_s > partition.rate_per_s * 1.05
}
