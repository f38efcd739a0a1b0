/** An entry's bytes, as people read them. */
export type View = 'text' | 'json' | 'hex'

const HEX_BYTES_PER_LINE = 16

export function bytesOf(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0))
}

/** In one line, for a list. */
export function preview(data: Uint8Array, view: View): string {
  if (view === 'hex') return [...data.subarray(0, 48)].map(hex).join(' ')
  return text(data)?.replace(/\s+/g, ' ') ?? `${[...data.subarray(0, 48)].map(hex).join(' ')}`
}

/** The whole: as text, as indented JSON, or as a hex dump, which bytes that are no text always are. */
export function whole(data: Uint8Array, view: View): string {
  const read = view === 'hex' ? null : text(data)
  if (read === null) return dump(data)
  return view === 'json' ? (indented(read) ?? read) : read
}

/** null: it is not UTF-8, or has control characters. A character that was cut at the end does not count. */
function text(data: Uint8Array): string | null {
  try {
    const read = new TextDecoder('utf-8', { fatal: true }).decode(data, { stream: true })
    // oxlint-disable-next-line no-control-regex -- those are what it looks for
    return /[\u0000-\u0008\u000e-\u001f]/.test(read) ? null : read
  } catch {
    return null
  }
}

function indented(read: string): string | null {
  try {
    return JSON.stringify(JSON.parse(read), null, 2)
  } catch {
    return null
  }
}

function dump(data: Uint8Array): string {
  const lines: string[] = []
  for (let from = 0; from < data.length; from += HEX_BYTES_PER_LINE) {
    const line = data.subarray(from, from + HEX_BYTES_PER_LINE)
    const digits = [...line]
      .map(hex)
      .join(' ')
      .padEnd(HEX_BYTES_PER_LINE * 3 - 1)
    const chars = [...line].map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '.')).join('')
    lines.push(`${from.toString(16).padStart(6, '0')}  ${digits}  ${chars}`)
  }
  return lines.join('\n')
}

function hex(byte: number): string {
  return byte.toString(16).padStart(2, '0')
}
