/** Reads the data of server-sent events from text that comes in pieces; comments and all else are passed over. */
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
