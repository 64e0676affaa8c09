/** Rows of a picture, each behind the byte that names its filter, with one byte for each pixel. */
interface Indexed {
  readonly palette: Buffer
  readonly rows: Buffer
}

/** What a picture has most of is kept as it is; every other colour, mostly the edge of a letter, becomes the nearest one. */
export function inPalette(rows: Buffer, rowBytes: number): Indexed {
  const counts = new Map<number, number>()
  eachPixel(rows, rowBytes, (colour) => counts.set(colour, (counts.get(colour) ?? 0) + 1))
  const colours = [...counts].sort(([, a], [, b]) => b - a).map(([colour]) => colour)
  const kept = withFarthest(colours.slice(0, 128), colours.slice(128))
  const indexes = new Map(colours.map((colour) => [colour, nearest(colour, kept)]))

  const width = rowBytes / 3
  const indexed = Buffer.alloc((rows.length / (rowBytes + 1)) * (width + 1))
  eachPixel(rows, rowBytes, (colour, x, y) => {
    indexed[y * (width + 1) + 1 + x] = indexes.get(colour) ?? 0
  })
  return { palette: Buffer.from(kept.flatMap(channels)), rows: indexed }
}

function eachPixel(rows: Buffer, rowBytes: number, visit: (colour: number, x: number, y: number) => void): void {
  for (let start = 1, y = 0; start < rows.length; start += rowBytes + 1, y++) {
    for (let at = 0; at < rowBytes; at += 3) visit(rows.readUIntBE(start + at, 3), at / 3, y)
  }
}

const channels = (colour: number): [number, number, number] => [colour >> 16, (colour >> 8) & 255, colour & 255]

/** Adds what is least like anything that is there, until the palette is full: a small red cross must not turn grey. */
function withFarthest(kept: readonly number[], others: readonly number[]): readonly number[] {
  const palette = [...kept]
  const gaps = others.map((colour) => Math.min(...kept.map((one) => distance(colour, one))))
  while (palette.length < 256) {
    const widest = Math.max(0, ...gaps)
    const chosen = others[gaps.indexOf(widest)]
    if (widest === 0 || chosen === undefined) break
    palette.push(chosen)
    for (const [index, colour] of others.entries()) {
      gaps[index] = Math.min(gaps[index] ?? 0, distance(colour, chosen))
    }
  }
  return palette
}

function nearest(colour: number, kept: readonly number[]): number {
  const distances = kept.map((one) => distance(colour, one))
  return distances.indexOf(Math.min(...distances))
}

function distance(one: number, other: number): number {
  const [red, green, blue] = channels(one)
  const [r, g, b] = channels(other)
  return (r - red) ** 2 + (g - green) ** 2 + (b - blue) ** 2
}
