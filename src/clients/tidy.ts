import type { Definition } from '../config/import/read-servers.ts'

/** What a server is comes first, then how to reach it, then the rest as it stood. */
const order = ['description', 'command', 'args', 'env', 'envFile', 'cwd', 'url', 'transport', 'headers', 'auth']

/** A definition as somebody would have written it: in a sensible order, without what goes without saying. */
export function tidy(definition: Definition): Definition {
  const rank = (key: string) => (order.includes(key) ? order.indexOf(key) : order.length)
  const told = Object.entries(definition).filter(([key, value]) => !goesWithoutSaying(key, value, definition))
  return Object.fromEntries(
    told.sort(([a], [b]) => rank(a) - rank(b)).map(([key, value]) => [key, key === 'timeout' ? rounded(value) : value]),
  )
}

/** `600000ms` is `10m`. */
function rounded(time: unknown): unknown {
  const count = Number(/^(\d+)ms$/.exec(String(time))?.[1] ?? Number.NaN)
  if (count % 60_000 === 0) return `${count / 60_000}m`
  return count % 1000 === 0 ? `${count / 1000}s` : time
}

function goesWithoutSaying(key: string, value: unknown, { url }: Definition): boolean {
  if (key === 'disabled') return value === false
  if (key === 'transport') return value === 'stdio' || (value === 'http' && !/\/sse\/?(\?|#|$)/.test(String(url)))
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0
}
