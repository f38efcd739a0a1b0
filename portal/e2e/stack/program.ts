import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export interface Place {
  apiUrl: string
  apiKey: string
  groupId: string
}

const DEFAULT_SCRIPT = fileURLToPath(new URL('./append.py', import.meta.url))
const SECONDS = 20

/**
 * Runs a customer's program against a group: QUORATE_APPEND_SCRIPT, a Python or a Node script (append.py unless
 * set), with the interpreter QUORATE_PYTHON for Python. Resolves with its output, rejects when it failed.
 */
export function runProgram({ apiUrl, apiKey, groupId }: Place, seconds = SECONDS): Promise<string> {
  const script = process.env.QUORATE_APPEND_SCRIPT ?? DEFAULT_SCRIPT
  const interpreter = script.endsWith('.py') ? (process.env.QUORATE_PYTHON ?? 'python3') : process.execPath
  const child = spawn(interpreter, [script], {
    env: {
      ...process.env,
      QUORATE_API_URL: apiUrl,
      QUORATE_API_KEY: apiKey,
      QUORATE_GROUP_ID: groupId,
      QUORATE_APPEND_S: String(seconds),
    },
  })
  let out = ''
  let err = ''
  child.stdout.on('data', (data: Buffer) => (out += data.toString()))
  child.stderr.on('data', (data: Buffer) => (err += data.toString()))
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) =>
      code === 0 ? resolve(out.trim()) : reject(new Error(`${script} ended with ${code}: ${err}`)),
    )
  })
}
