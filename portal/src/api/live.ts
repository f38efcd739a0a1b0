import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { portalFetch } from './transport'
import type { LiveSample } from './types'

/** `silent`: connected, but the service itself gets no samples now. */
export type LiveState = 'connecting' | 'open' | 'silent' | 'waiting'

interface Listener {
  onSample(sample: LiveSample): void
  onPlacement(): void
  onState(state: LiveState): void
}

/** Waits between attempts, in milliseconds. The last one repeats. */
const RETRY_DELAYS_MS = [500, 1_000, 2_000, 5_000, 10_000]
/** The service sends a sample or a keep-alive at least this often. A longer silence means a dead connection. */
const SILENCE_MAX_MS = 25_000
/** A chart begins with what is known of its whole width. */
const RECENT_S = 120

/**
 * Follows a group's live events until `signal` aborts, reconnecting with growing delays.
 *
 * It uses fetch, not EventSource, so that lost sessions, refusals and dead connections look as in other calls.
 */
export async function followLive(groupId: string, listener: Listener, signal: AbortSignal): Promise<void> {
  for (let attempt = 0; !signal.aborted; attempt += 1) {
    listener.onState(attempt === 0 ? 'connecting' : 'waiting')
    const connection = new AbortController()
    const stop = () => connection.abort()
    signal.addEventListener('abort', stop, { once: true })
    try {
      await readOnce(groupId, connection, () => (attempt = 0), listener)
    } catch {
      // Every failure has the same handling: report the connection as down, wait, try again.
    } finally {
      signal.removeEventListener('abort', stop)
      connection.abort()
    }
    await pause(RETRY_DELAYS_MS[Math.min(attempt, RETRY_DELAYS_MS.length - 1)] ?? 10_000, signal)
  }
}

async function readOnce(groupId: string, connection: AbortController, onOpen: () => void, listener: Listener) {
  const response = await portalFetch(`/v1/groups/${encodeURIComponent(groupId)}/live?recent_s=${RECENT_S}`, {
    headers: { accept: 'text/event-stream' },
    signal: connection.signal,
  })
  if (!response.body) return
  onOpen()
  listener.onState('open')
  const parser = createParser({ onEvent: (event) => deliver(event, listener) })
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let silence = setTimeout(() => connection.abort(), SILENCE_MAX_MS)
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      clearTimeout(silence)
      silence = setTimeout(() => connection.abort(), SILENCE_MAX_MS)
      parser.feed(value)
    }
  } finally {
    clearTimeout(silence)
  }
}

function deliver(event: EventSourceMessage, listener: Listener): void {
  if (event.event === 'placement') listener.onPlacement()
  if (event.event === 'source')
    listener.onState((JSON.parse(event.data) as { available: boolean }).available ? 'open' : 'silent')
  if (event.event === 'sample') listener.onSample(JSON.parse(event.data) as LiveSample)
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve()
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, milliseconds)
    signal.addEventListener('abort', done, { once: true })
  })
}
