/** Programs for developers to copy. Each is complete: paste, run, and the first entry is committed. */
export interface Place {
  apiUrl: string
  apiKey: string
  groupId: string
  /** Whether keys are divided among partitions. */
  isDivided: boolean
}

/** Placeholder of the key before one is created, and after the page was left. */
export const KEY_PLACEHOLDER = 'YOUR_API_KEY'

export const LANGUAGES = [
  { id: 'python', label: 'Python', note: 'Python 3.11 or newer, with the package of sdk/python installed.' },
  {
    id: 'javascript',
    label: 'JavaScript',
    note: 'Node 20 or newer, with the package of sdk/js installed. Save it as append.mjs.',
  },
  {
    id: 'curl',
    label: 'curl',
    note: 'Answers with the handle: where the group’s servers are, and a token for them. Appends go to the servers, over an SDK.',
  },
] as const
export type Language = (typeof LANGUAGES)[number]['id']

export function snippet(language: Language, place: Place): string {
  return MAKERS[language](place)
}

const MAKERS: Record<Language, (place: Place) => string> = {
  python: ({ apiUrl, apiKey, groupId, isDivided }) => `import asyncio
import quorate

async def main():
    log = await quorate.${isDivided ? 'connect_partitioned_group' : 'connect_group'}(
        "${apiUrl}",
        "${apiKey}",
        "${groupId}",
    )
    print(await log.append(b"hello"${isDivided ? ', key="order-17"' : ''}))
    await log.close()

asyncio.run(main())`,
  javascript: ({ apiUrl, apiKey, groupId, isDivided }) => `import { ${connecting(isDivided)} } from "quorate"

const log = await ${connecting(isDivided)}(
  "${apiUrl}",
  "${apiKey}",
  "${groupId}",
)
console.log(await log.append(Buffer.from("hello")${isDivided ? ', { key: "order-17" }' : ''}))
await log.close()`,
  curl: ({ apiUrl, apiKey, groupId }) => `curl ${apiUrl}/v1/groups/${groupId}/handle \\
  -H "Authorization: Bearer ${apiKey}"`,
}

function connecting(isDivided: boolean): string {
  return isDivided ? 'connectPartitionedGroup' : 'connectGroup'
}
