import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const PROVIDER_FOLDER = fileURLToPath(new URL('../../../build/bin', import.meta.url))
const TIMEOUT_MS = 60_000
const run = promisify(execFile)

/** Terraform's plan of a configuration, with the provider of `make build`. Rejects with its errors. */
export async function planOf(configuration: string, apiKey: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'quorate-terraform-'))
  try {
    const settings = join(folder, 'cli.tfrc')
    const override = `dev_overrides { "quorate/quorate" = ${JSON.stringify(PROVIDER_FOLDER)} }`
    await writeFile(settings, `provider_installation {\n  ${override}\n}\n`)
    await writeFile(join(folder, 'main.tf'), configuration)
    const env = {
      ...process.env,
      TF_CLI_CONFIG_FILE: settings,
      CHECKPOINT_DISABLE: '1',
      QUORATE_API_KEY: apiKey,
    }
    const { stdout } = await run('terraform', ['plan', '-no-color'], { cwd: folder, env, timeout: TIMEOUT_MS })
    return stdout
  } finally {
    await rm(folder, { recursive: true })
  }
}
