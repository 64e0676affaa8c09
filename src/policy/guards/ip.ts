import { isIPv4, isIPv6 } from 'node:net'

/** The bytes of an IPv4 address in its usual spelling; nothing else counts as one. */
export function readIPv4(text: string): readonly number[] | undefined {
  return isIPv4(text) ? text.split('.').map(Number) : undefined
}

/** The bytes of an IPv6 address. One with a zone means something on one machine only and does not count. */
export function readIPv6(text: string): readonly number[] | undefined {
  if (!isIPv6(text) || text.includes('%')) return undefined
  const dotted = text.includes('.') ? text.lastIndexOf(':') + 1 : text.length
  const tail = readIPv4(text.slice(dotted)) ?? []
  const [before = '', after] = text
    .slice(0, dotted)
    .replace(/(?<!:):$/, '')
    .split('::')
  const left = groups(before)
  const right = [...groups(after ?? ''), ...tail]
  return [...left, ...Array<number>(16 - left.length - right.length).fill(0), ...right]
}

const groups = (text: string) =>
  text
    .split(':')
    .filter((group) => group !== '')
    .flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 0xff])
