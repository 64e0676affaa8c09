/** What a program prints, on its way out. */
export interface Printer {
  print(text: string): void
  flush(): void
  /** Something had to be left out. */
  readonly cut: boolean
}

/** Few messages for many lines, but none waits for long: a program that has to be killed has still said it. */
const batchBytes = 4096
const batchMs = 50

export function createPrinter(maxBytes: number, send: (text: string) => void): Printer {
  let batch = ''
  let left = maxBytes
  let sent = 0
  let cut = false

  const flush = () => {
    if (batch === '') return
    send(batch)
    batch = ''
    sent = performance.now()
  }

  return {
    print(text) {
      if (left <= 0) {
        cut ||= text !== ''
        return
      }
      const bytes = Buffer.from(text)
      cut ||= bytes.length > left
      batch += bytes.length > left ? bytes.subarray(0, left).toString() : text
      left -= bytes.length
      if (batch.length > batchBytes || performance.now() - sent > batchMs) flush()
    },
    flush,
    get cut() {
      return cut
    },
  }
}
