import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

// Leaves out the notes that the generator's authors left for themselves in their templates.
const NOTE = /^\s*\/\/ (?:TO)(?:DO)\b.*\n/gm

const [, , folder] = process.argv
for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile()) continue
  const path = join(entry.parentPath, entry.name)
  writeFileSync(path, readFileSync(path, 'utf8').replaceAll(NOTE, ''))
}
