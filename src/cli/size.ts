const units = ['bytes', 'KB', 'MB', 'GB'] as const

/** A number of bytes as people say it: `12 KB`. */
export function sizeText(bytes: number): string {
  let value = bytes
  let unit = 0
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000
    unit++
  }
  const digits = unit === 0 || value >= 10 ? 0 : 1
  return `${value.toFixed(digits)} ${bytes === 1 ? 'byte' : units[unit]}`
}
