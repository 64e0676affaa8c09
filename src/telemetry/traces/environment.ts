/** The variables of the process, as far as they are set. */
export type Environment = Readonly<Record<string, string | undefined>>

/** A variable that is set; an empty one counts as unset, as OpenTelemetry wants it. */
export const variable = (env: Environment, name: string): string | undefined => env[name]?.trim() || undefined

/** `key=value,key2=value2`, percent-encoded: the form of headers and of resource attributes. What is malformed is left out. */
export function pairs(list: string | undefined): Record<string, string> {
  const found: Record<string, string> = {}
  for (const pair of (list ?? '').split(',')) {
    const sign = pair.indexOf('=')
    const key = decoded(pair.slice(0, Math.max(sign, 0)).trim())
    if (sign > 0 && key !== '') found[key] = decoded(pair.slice(sign + 1).trim())
  }
  return found
}

/** Without its percent signs, or as it is where they mean nothing. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
