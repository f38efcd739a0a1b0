import { useQuery } from '@tanstack/react-query'
import { pricesQuery, type PriceListed } from '@/api'
import { money } from '@/format/money'
import { day } from '@/format/time'
import { LoadFailed } from '@/ui/Notice'
import { Badge } from '@/ui/StatusBadge'
import { Section, Skeleton } from '@/ui/Surface'

const RESOURCES: Record<string, string> = {
  cpu: 'Processor',
  network: 'Network',
  storage_io: 'Storage operations',
}

/** The price lists. A release changes them, and a month is billed by the list of its begin. */
export function PricesSection() {
  const found = useQuery(pricesQuery)
  return (
    <Section
      title="Price lists"
      description="A release of the API adds one; a month is billed by the list of its begin."
    >
      {found.isPending && <Skeleton className="h-48 w-full" />}
      {found.error && !found.data && (
        <LoadFailed what="the price lists" error={found.error} retry={() => void found.refetch()} />
      )}
      {found.data?.items.map((list) => (
        <List key={list.valid_from} list={list} currency={found.data.currency} />
      ))}
    </Section>
  )
}

function List({ list, currency }: { list: PriceListed; currency: string }) {
  const rows = [
    ...list.resources.map((each) => [
      `${RESOURCES[each.resource] ?? each.resource}, reserved`,
      each.hourly_micros,
      `${each.unit} and hour`,
    ]),
    ['Guarantee', list.guarantee_hourly_micros, 'million tokens/s and hour'],
    ...list.usage.map((each) => [each.label, each.price_micros, each.per]),
  ] as [string, number, string][]
  return (
    <div className="mb-6 last:mb-0">
      <h3 className="mb-2 flex items-center gap-3 text-sm font-medium">
        From {day(list.valid_from)} {list.is_held && <Badge tone="good">Holds now</Badge>}
      </h3>
      <ul className="divide-y divide-line text-sm">
        {rows.map(([label, micros, per]) => (
          <li key={label} className="flex flex-wrap justify-between gap-x-4 py-1.5">
            <span>{label}</span>
            <span className="nums">
              {money(micros, currency)} <span className="text-ink-3">per {per}</span>
            </span>
          </li>
        ))}
        {list.commitments.map(({ months, percent_off }) => (
          <li key={months} className="flex justify-between gap-x-4 py-1.5">
            <span>Commitment for {months} months</span>
            <span className="nums">{percent_off} % off</span>
          </li>
        ))}
      </ul>
    </div>
  )
}
