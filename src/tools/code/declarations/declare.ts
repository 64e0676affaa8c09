import { body, propertyName } from './object-type.ts'

/** The methods of each server, by the identifier of the server, as one declaration of `tools`. */
export function declare(servers: ReadonlyMap<string, readonly string[]>): string {
  if (servers.size === 0) return ''
  const members = [...servers].map(([server, methods]) => `${propertyName(server)}: ${body(methods)}`)
  return `declare const tools: ${body(members)}`
}
