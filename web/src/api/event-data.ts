/** Incremental parser of server-sent events: passes on their data and skips comments and other fields. */
export function createEventData(told: (data: string) => void): (piece: string) => void {
  let rest = ''
  return (piece) => {
    const blocks = (rest + piece).split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) {
      const lines = block.split('\n').filter((line) => line.startsWith('data:'))
      if (lines.length > 0) told(lines.map((line) => line.slice(5).replace(/^ /, '')).join('\n'))
    }
  }
}
