import { spawn } from 'node:child_process'

export interface Figure {
  name: string
  value: number
  unit: string
  goal?: number
  more_is_better?: boolean
  note?: string
}

/** The project's one writer of figures is in Python. */
const KEEP = [
  'import json, sys',
  'from quorate_harness.figures import FOLDER, Figure, keep',
  'said = json.load(sys.stdin)',
  'keep([Figure(**each) for each in said["figures"]], said["command"], FOLDER / "portal.jsonl")',
].join('\n')

/** Appends the figures to `build/figures/portal.jsonl`. `command`: what measures them again. */
export function keep(figures: readonly Figure[], command = 'make test'): Promise<void> {
  const child = spawn(process.env.QUORATE_PYTHON ?? 'python3', ['-c', KEEP], { stdio: ['pipe', 'inherit', 'pipe'] })
  let err = ''
  child.stderr.on('data', (data: Buffer) => (err += data.toString()))
  child.stdin.end(JSON.stringify({ figures, command }))
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => (code === 0 ? resolve() : reject(new Error(`figures were not kept: ${err}`))))
  })
}
