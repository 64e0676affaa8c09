const formats: Readonly<Record<string, { readonly matches: (text: string) => boolean; readonly example: string }>> = {
  date: { matches: (text) => /^\d{4}-\d\d-\d\d$/.test(text) && isTime(text), example: '2026-03-01' },
  'date-time': {
    matches: (text) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i.test(text) && isTime(text),
    example: '2026-03-01T12:00:00Z',
  },
  time: { matches: (text) => /^\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?$/i.test(text), example: '12:00:00Z' },
  email: { matches: (text) => /^[^\s@]+@[^\s@]+$/.test(text), example: 'ada@example.com' },
  uri: { matches: (text) => URL.canParse(text), example: 'https://example.com/a' },
  uuid: {
    matches: (text) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text),
    example: '123e4567-e89b-42d3-a456-426614174000',
  },
}

const isTime = (text: string): boolean => !Number.isNaN(Date.parse(text))

/** The problem with a value that does not have the given format. Unknown formats accept everything. */
export function formatProblem(value: unknown, format: unknown): string | undefined {
  const known = formatOf(format)
  if (!known || typeof value !== 'string' || known.matches(value)) return undefined
  return `must look like ${known.example}`
}

/** An example for a format, for the placeholder in an empty field. */
export const exampleOf = (format: unknown): string | undefined => formatOf(format)?.example

const formatOf = (format: unknown) =>
  typeof format === 'string' && Object.hasOwn(formats, format) ? formats[format] : undefined
