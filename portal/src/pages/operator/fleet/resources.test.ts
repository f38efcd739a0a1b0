import { expect, it } from 'vitest'
import { promisedPart, RESOURCES, scarcest } from './resources'

const amounts = (cpu: number, disk: number | null) => ({
  cpu,
  network_bytes_per_s: 100,
  storage_io_per_s: 100,
  memory_bytes: 100,
  disk_bytes: disk,
})
const [CPU, NETWORK] = RESOURCES
const DISK = RESOURCES[4]

it('tells which resource is promised most', () => {
  const use = { promisable: amounts(4, 100), allocated: { ...amounts(3, 90), network_bytes_per_s: 10 } }
  expect(promisedPart(use, CPU)).toBe(0.75)
  expect(promisedPart(use, NETWORK)).toBe(0.1)
  expect(scarcest(use)?.resource.name).toBe('storage_io')
})

it('knows nothing of a resource that a server does not tell', () => {
  const use = { promisable: amounts(4, null), allocated: amounts(1, null) }
  expect(promisedPart(use, DISK)).toBeNull()
})

it('takes nothing of nothing for none', () => {
  expect(promisedPart({ promisable: amounts(0, 1), allocated: amounts(0, 1) }, CPU)).toBe(0)
  expect(promisedPart({ promisable: amounts(0, 1), allocated: amounts(1, 1) }, CPU)).toBe(1)
})
