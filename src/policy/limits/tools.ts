import { compilePattern } from '../patterns.ts'

interface ToolLimit {
  readonly rule: string
  readonly perMinute: number
}

/** The limit of one tool; where it only carries other calls, patterns count that name its own server. */
type ToolLimitOf = (server: string, name: string, carries: boolean) => ToolLimit | undefined

/** Limits by `server.tool`: the very name before any pattern, and of patterns the most particular that matches. */
export function compileToolLimits(written: Readonly<Record<string, number>>): ToolLimitOf {
  const limits = Object.entries(written).map(([pattern, perMinute]) => ({
    pattern,
    matches: compilePattern(pattern),
    limit: { rule: `limits.tools.${pattern}`, perMinute },
  }))
  const names = new Map(limits.filter(({ pattern }) => !isPattern(pattern)).map((one) => [one.pattern, one.limit]))
  const patterns = limits.filter(({ pattern }) => isPattern(pattern)).sort(byParticularity)

  return (server, name, carries) => {
    const whole = `${server}.${name}`
    const own = (pattern: string) => !carries || pattern.startsWith(`${server}.`)
    return names.get(whole) ?? patterns.find(({ pattern, matches }) => own(pattern) && matches(whole))?.limit
  }
}

const isPattern = (text: string): boolean => text.includes('*')

/** The longer beginning first, then the more letters in all; the alphabet decides where neither does. */
function byParticularity({ pattern: a }: { pattern: string }, { pattern: b }: { pattern: string }): number {
  return b.indexOf('*') - a.indexOf('*') || letters(b) - letters(a) || (a < b ? -1 : 1)
}

const letters = (pattern: string): number => pattern.replaceAll('*', '').length
