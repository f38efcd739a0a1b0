import { http, HttpResponse } from 'msw'
import { describe, expect, it } from 'vitest'
import { server } from '#mock/server'
import { followLive, type LiveSample, type LiveState } from '@/api'

const SAMPLE = {
  at_ms: 1_000,
  append_per_s: 5,
  offered_per_s: 5,
  throttled_per_s: 0,
  p50_us: 1,
  p99_us: 2,
  committed_entries: 7,
  epoch: 1,
}

function stream(...parts: string[]) {
  const encoder = new TextEncoder()
  const body = new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(encoder.encode(part))
      controller.close()
    },
  })
  return new HttpResponse(body, { headers: { 'content-type': 'text/event-stream' } })
}

/** Follows until `enough`, and returns the events. */
async function listen(enough: (heard: { samples: LiveSample[]; states: LiveState[]; placements: number }) => boolean) {
  const following = new AbortController()
  const heard = { samples: [] as LiveSample[], states: [] as LiveState[], placements: 0 }
  const check = () => enough(heard) && following.abort()
  await followLive(
    'g',
    {
      onSample: (sample) => (heard.samples.push(sample), check()),
      onState: (state) => (heard.states.push(state), check()),
      onPlacement: () => ((heard.placements += 1), check()),
    },
    following.signal,
  )
  return heard
}

describe('the live stream', () => {
  it('reads samples that are cut anywhere', async () => {
    const text = `: hello\n\nevent: sample\ndata: ${JSON.stringify(SAMPLE)}\n\n`
    server.use(http.get('*/v1/groups/g/live', () => stream(text.slice(0, 20), text.slice(20, 61), text.slice(61))))
    const { samples } = await listen((heard) => heard.samples.length === 1)
    expect(samples).toEqual([SAMPLE])
  })

  it('reports placements, and a source that goes away and comes back', async () => {
    const text =
      'event: placement\ndata: {}\n\nevent: source\ndata: {"available":false}\n\nevent: source\ndata: {"available":true}\n\n'
    server.use(http.get('*/v1/groups/g/live', () => stream(text)))
    const { states, placements } = await listen((heard) => heard.states.length === 4)
    expect(placements).toBe(1)
    expect(states).toEqual(['connecting', 'open', 'silent', 'open'])
  })

  it('connects again after a failure', async () => {
    let attempts = 0
    server.use(
      http.get('*/v1/groups/g/live', () => {
        attempts += 1
        return attempts === 1 ? HttpResponse.error() : stream(`event: sample\ndata: ${JSON.stringify(SAMPLE)}\n\n`)
      }),
    )
    const { states, samples } = await listen((heard) => heard.samples.length === 1)
    expect(states).toEqual(['connecting', 'waiting', 'open'])
    expect(samples).toHaveLength(1)
  })
})
