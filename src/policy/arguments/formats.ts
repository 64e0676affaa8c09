import { isIPv4, isIPv6 } from 'node:net'

/** Longer strings are the server's own affair. */
const longest = 4096

const zone = '(z|[+-]\\d\\d(:?\\d\\d)?)?'
const clock = `\\d\\d:\\d\\d(:\\d\\d(\\.\\d+)?)?${zone}`

/**
 * Formats that are checked, loosely. In today's JSON Schema they are remarks more than rules, and a gateway that is
 * stricter than the server would refuse what works: many say date-time and take dates without a zone.
 */
export const formats: Readonly<Record<string, (text: string) => boolean>> = {
  'date-time': like(new RegExp(`^\\d{4}-\\d\\d-\\d\\d[t ]${clock}$`, 'i')),
  date: like(/^\d{4}-\d\d-\d\d/),
  time: like(new RegExp(`^${clock}$`, 'i')),
  email: like(/^[^\s@]+@[^\s@]+$/),
  uri: like(/^[a-z][a-z0-9+.-]*:\S*$/i),
  uuid: like(/^(urn:uuid:)?[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i),
  ipv4: isIPv4,
  ipv6: isIPv6,
}

function like(pattern: RegExp): (text: string) => boolean {
  return (text) => text.length > longest || pattern.test(text)
}
