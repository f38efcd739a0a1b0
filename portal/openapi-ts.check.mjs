import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

// Exits 1 unless the client that is checked in is what `npm run gen` writes.
const CHECKED_IN = 'src/api/generated'

function contents(folder) {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((each) => each.isFile())
  const paths = files.map((each) => join(each.parentPath, each.name))
  return new Map(paths.map((path) => [path.slice(folder.length + 1), readFileSync(path, 'utf8')]))
}

const folder = mkdtempSync(join(tmpdir(), 'portal-gen-'))
try {
  execFileSync('node_modules/.bin/openapi-ts', { env: { ...process.env, GEN_OUT: folder }, stdio: 'pipe' })
  const [fresh, kept] = [contents(folder), contents(CHECKED_IN)]
  const names = [...new Set([...fresh.keys(), ...kept.keys()])].toSorted()
  const stale = names.filter((name) => fresh.get(name) !== kept.get(name))
  for (const name of stale) process.stderr.write(`portal/${CHECKED_IN}/${name} is stale: \`make gen\` writes it\n`)
  process.exitCode = stale.length > 0 ? 1 : 0
} finally {
  rmSync(folder, { recursive: true, force: true })
}
