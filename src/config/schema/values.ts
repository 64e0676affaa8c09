import * as z from 'zod'
import { durationUnits } from '../../lib/duration.ts'
import { isProtected } from '../../lib/url.ts'

/** Extends a published pattern to accept a variable, because editors validate values before variables are expanded. */
const orVariable = (pattern: string) => `^(?:${pattern})$|\\$\\{`

interface Unit {
  readonly factors: Readonly<Record<string, number>>
  readonly expected: string
  readonly hint: (bare: string) => string
}

const time: Unit = {
  factors: durationUnits,
  expected: 'a duration such as 500ms, 30s, 5m or 1h',
  hint: (bare) => `${bare}s (or ${bare}ms)`,
}

const memory: Unit = {
  factors: { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 },
  expected: 'a size such as 64KiB or 4MiB',
  hint: (bare) => `${bare}B`,
}

/** Reports an invalid value. `hint` suggests what the author may have meant. */
export function refuse(context: z.core.$RefinementCtx, expected: string, hint?: string): never {
  context.addIssue({ code: 'custom', message: expected, params: { hint } })
  return z.NEVER
}

/** Caches schemas by the arguments of `make`. Without this, building the schema takes twice the time and memory. */
function shared<Given extends readonly unknown[], Schema>(make: (...given: Given) => Schema) {
  const made = new Map<string, Schema>()
  return (...given: Given): Schema => {
    const key = JSON.stringify(given)
    const schema = made.get(key) ?? make(...given)
    made.set(key, schema)
    return schema
  }
}

const amount = ({ factors, expected, hint }: Unit, least: string, most: string) => {
  const units = Object.keys(factors).join('|')
  const pattern = new RegExp(`^(\\d+(?:\\.\\d+)?)(${units})$`)
  const measure = (text: string): number | undefined => {
    const [, count, unit] = pattern.exec(text) ?? []
    if (text === '0') return 0
    return unit === undefined ? undefined : Math.round(Number(count) * (factors[unit] as number))
  }
  const [min, max] = [least, most].map((bound) => measure(bound) as number) as [number, number]
  const written = z.string().meta({ pattern: orVariable(`0|\\d+(\\.\\d+)?(${units})`) })
  return z.union([written, z.number().meta({ const: 0 })], { error: expected }).transform((value, context): number => {
    const text = String(value)
    const measured = measure(text)
    if (measured === undefined) return refuse(context, expected, /^\d+(\.\d+)?$/.test(text) ? hint(text) : undefined)
    return measured >= min && measured <= max ? measured : refuse(context, `${expected}, from ${least} to ${most}`)
  })
}

/** A duration such as `500ms` or `1h`, in milliseconds. The default maximum is 24 days: longer timers fire at once. */
export const duration = shared(({ least = '0', most = '24d' } = {}) => amount(time, least, most))

/** A time limit. It cannot be 0: a limit of 0 would reject everything, and disabling the limit is not supported. */
export const limit = () => duration({ least: '1ms' })

/** A size such as `64KiB` or `4MiB`; outputs bytes. */
export const size = shared(({ least = '1B' } = {}) => amount(memory, least, '1024GiB'))

/** A number. Strings are accepted too, because variables expand to strings. */
export const numeric = shared(({ min = 0, max = Number.MAX_SAFE_INTEGER, whole = true } = {}) => {
  const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`
  const expected = `a ${whole ? 'whole ' : ''}number ${range}`
  const written = z.string().meta({ pattern: orVariable('-?\\d+(\\.\\d+)?') })
  const plain = z.number().meta({ minimum: min, ...(max < Number.MAX_SAFE_INTEGER && { maximum: max }) })
  return z.union([plain, written], { error: expected }).transform((value, context): number => {
    const number = typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value
    if (typeof number === 'number' && number >= min && number <= max && (!whole || Number.isInteger(number)))
      return number
    return refuse(context, expected)
  })
})

/** A boolean. Strings are accepted too, because variables expand to strings. */
export const flag = shared(() => {
  const written = z.string().meta({ pattern: orVariable('true|false') })
  return z.union([z.boolean(), written], { error: 'true or false' }).transform((value, context): boolean => {
    if (value === true || value === 'true') return true
    return value === false || value === 'false' ? false : refuse(context, 'true or false')
  })
})

/** Non-empty text. Empty text is rejected, so a variable with an empty value counts as missing. */
export const text = shared((expected: string = 'text') =>
  z.string({ error: expected }).refine((value) => value !== '' && !value.includes('\0'), { error: expected }),
)

/** Text that is passed on unchanged. Numbers and booleans are accepted too. */
export const verbatim = shared(() =>
  z.union([z.string(), z.number(), z.boolean()], { error: 'text' }).transform((value, context): string => {
    const written = String(value)
    return written.includes('\0') ? refuse(context, 'text without NUL characters') : written
  }),
)

export const textLike = (pattern: RegExp, expected: string) =>
  z
    .string({ error: expected })
    .meta({ pattern: orVariable(pattern.source.replace(/^\^|\$$/g, '')) })
    .refine((value) => pattern.test(value), { error: expected })

/** An absolute URL with one of these schemes, or text with a variable, which stays unexpanded in disabled sections. */
export const address = (...schemes: readonly string[]) => {
  const expected = `a URL that starts with ${schemes.map((scheme) => `${scheme}://`).join(' or ')}`
  const isValid = (value: string) =>
    value.includes('${') || (URL.canParse(value) && schemes.includes(new URL(value).protocol.slice(0, -1)))
  return z
    .string({ error: expected })
    .meta({ pattern: `^(?:${schemes.join('|')})://|\\$\\{` })
    .refine(isValid, { error: expected })
}

/** Whether traffic to a URL is protected. Text with a variable stays unexpanded in disabled sections. */
export const isProtectedUrl = (value: string): boolean =>
  URL.canParse(value) ? isProtected(new URL(value)) : value.includes('${')

/** A path. It becomes absolute when the configuration is loaded. */
export const path = () => text('the path of a file or folder')

export const names = shared((expected: string = 'a name or a pattern with *') => z.array(text(expected)))

/** HTTP headers. Values with line breaks are rejected, because a line break could inject another header. */
export const headers = z
  .record(
    textLike(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, 'the name of an HTTP header'),
    verbatim().refine((value) => !/[\0-\x08\x0a-\x1f\x7f]/.test(value), {
      error: 'a header value without control characters',
    }),
  )
  .default({})
