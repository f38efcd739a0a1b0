import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Message {
  type: string
  timestamp: string
  data: Record<string, unknown>
}

interface Received {
  headers: IncomingMessage['headers']
  body: string
}

/** A customer's receiver of webhooks, on this machine. Close it at the end. */
export async function receiver() {
  const received: Received[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (part: Buffer) => (body += part.toString()))
    request.on('end', () => {
      received.push({ headers: request.headers, body })
      response.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${String(port)}/quorate`,
    received,
    close: () => new Promise((resolve) => server.close(resolve)),
  }
}

/** The message, if it is signed with the secret as Standard Webhooks has it; written apart from the service's library. */
export function verified({ headers, body }: Received, secret: string): Message | null {
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  const signed = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${body}`
  const expected = createHmac('sha256', key).update(signed).digest()
  const given = String(headers['webhook-signature'])
    .split(' ')
    .map((each) => Buffer.from(each.replace('v1,', ''), 'base64'))
  const isSound = given.some((each) => each.length === expected.length && timingSafeEqual(each, expected))
  return isSound ? (JSON.parse(body) as Message) : null
}
