/** Offers the bytes to the reader's browser as a download of that name. */
export function saveFile(file: Blob, name: string): void {
  const address = URL.createObjectURL(file)
  const link = document.createElement('a')
  link.href = address
  link.download = name
  link.click()
  // The browser has taken the bytes by its next turn.
  setTimeout(() => URL.revokeObjectURL(address), 0)
}
