import { http, HttpResponse } from 'msw'
import type { MovingGroup, RateChange } from '@/api'
import { database, newId, persist } from '../db'
import { invalid, notFound } from '../reply'
import { forOperators, record } from './operator'

const agoIso = (seconds: number) => new Date(Date.now() - seconds * 1_000).toISOString()

/** The first group follows its load. */
function changes(): RateChange[] {
  const id = database().groups[0]?.group.id ?? newId()
  return [
    { at: agoIso(20), group_id: id, is_swapped: false, rates: [9_000, 3_000, 4_000, 4_000] },
    { at: agoIso(95), group_id: id, is_swapped: true, rates: [7_000, 5_000, 4_000, 4_000] },
  ]
}

export const moves = [
  http.get(
    '/v1/operator/balance',
    forOperators(() =>
      HttpResponse.json({
        rounds: 812,
        ended_at: agoIso(2),
        partitions: 4,
        pressures: [
          {
            server_id: 2,
            cause: 'demand',
            partition: database().groups[0]?.group.id ?? null,
            lacking: { cpu: 0.42, network_bytes_per_s: 12e6, storage_io_per_s: 0 },
          },
        ],
        rate_changes: changes(),
        moves: database().moves,
      }),
    ),
  ),
  http.post(
    '/v1/operator/groups/:id/moves',
    forOperators(async (request, { id }) => {
      const db = database()
      const found = db.groups.find(({ group }) => group.id === id)
      if (!found) return notFound('group')
      const { from_server, to_server } = (await request.clone().json()) as { from_server: number; to_server?: number }
      if (to_server === from_server) return invalid('to_server', 'The replica is there already.')
      const begun: MovingGroup = {
        group_id: found.group.id,
        project_id: found.group.project_id,
        relocation: {
          cause: 'operator',
          since: agoIso(0),
          moves: [{ from_server, to_server: to_server ?? 3 }],
          scarce_resource: null,
        },
      }
      db.moves = [begun, ...db.moves.filter((each) => each.group_id !== id)]
      record('move_replica', request, { from_server, to_server: to_server ?? null })
      persist()
      return HttpResponse.json(begun, { status: 200 })
    }),
  ),
  http.get(
    '/v1/operator/guarantees',
    forOperators(() =>
      HttpResponse.json({
        items: [
          {
            project_id: database().groups[0]?.group.project_id ?? newId(),
            shared_tokens_per_s: 40_000,
            max_tokens_per_s: null,
            policy: { name: 'drf', groups: [] },
            since: agoIso(86_400),
            groups: 3,
            own_tokens_per_s: 21_000,
            wanted_tokens_per_s: 52_000,
            granted_tokens_per_s: 40_000,
          },
        ],
      }),
    ),
  ),
]
