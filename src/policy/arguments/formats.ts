import { isIPv4, isIPv6 } from 'node:net'

/** Longer texts are not checked. */
const maxPatternText = 4096

const zone = '(z|[+-]\\d\\d(:?\\d\\d)?)?'
const clock = `\\d\\d:\\d\\d(:\\d\\d(\\.\\d+)?)?${zone}`

/**
 * The formats that are checked, but only loosely. In current JSON Schema they are annotations, and a gateway that is
 * stricter than the server would refuse working calls: many servers declare date-time and accept dates without a zone.
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
  return (text) => text.length > maxPatternText || pattern.test(text)
}
