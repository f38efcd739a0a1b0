import { execFileSync } from 'node:child_process'
import { join } from 'node:path'

export const OPERATOR = 'ada@example.com'

/** As an operator makes one on the API's machine. */
export function operatorToken(): string {
  const state = process.env.QUORATE_STATE
  if (!state) throw new Error('Set QUORATE_STATE to the folder of the running stack.')
  const python = process.env.QUORATE_PYTHON ?? 'python3'
  const env = {
    ...process.env,
    DATABASE_URL: 'postgresql://nobody@127.0.0.1/unused',
    QUORATE_SECRET_FILE: join(state, 'secrets', 'api-secret'),
  }
  const args = ['-m', 'quorate_api.main', 'operator-session', '--name', OPERATOR]
  return execFileSync(python, args, { env, encoding: 'utf8' }).trim()
}
