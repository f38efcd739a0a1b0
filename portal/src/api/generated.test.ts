import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const CHECKED_IN = 'src/api/generated'

function contents(folder: string): Record<string, string> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((each) => each.isFile())
  return Object.fromEntries(
    files.map((each) => {
      const path = join(each.parentPath, each.name)
      return [path.slice(folder.length + 1), readFileSync(path, 'utf8')]
    }),
  )
}

it('is what `npm run gen` makes of sdk/contract/openapi.json', { timeout: 60_000 }, () => {
  const fresh = mkdtempSync(join(tmpdir(), 'portal-gen-'))
  try {
    execFileSync('node_modules/.bin/openapi-ts', { env: { ...process.env, GEN_OUT: fresh }, stdio: 'pipe' })
    expect(contents(CHECKED_IN)).toEqual(contents(fresh))
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
})
