import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from '@playwright/test'

/** The address in the latest mail to somebody that the stack has sent into its folder. */
export async function linkIn(to: string, subject: RegExp): Promise<string> {
  const state = process.env.QUORATE_STATE
  if (!state) throw new Error('Set QUORATE_STATE to the folder of the running stack.')
  const folder = join(state, 'mail')
  let link = ''
  await expect(async () => {
    const files = (await readdir(folder)).filter((name) => name.endsWith('.eml')).toSorted()
    const mails = await Promise.all(files.map((name) => readFile(join(folder, name), 'utf8')))
    const found = mails.findLast((mail) => mail.includes(`To: ${to}`) && subject.test(mail))
    link = /https?:\/\/\S+#\S+/.exec(found ?? '')?.[0] ?? ''
    expect(link).not.toBe('')
  }).toPass({ timeout: 20_000 })
  return link
}
