/** Why PostgreSQL could not be used. Several addresses of one name fail together, without a sentence of their own. */
export function reasonOf(thrown: unknown): string {
  const { message, code, errors } = thrown as Error & { code?: string; errors?: readonly Error[] }
  if (code === undefinedTable || code === undefinedSchema) return 'its tables are not there yet; run `toolway migrate`'
  return message || errors?.[0]?.message || code || String(thrown)
}

const undefinedTable = '42P01'
const undefinedSchema = '3F000'
