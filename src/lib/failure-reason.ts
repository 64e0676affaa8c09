/**
 * A short reason for a failed connection, such as ECONNREFUSED; the first one if several addresses were tried. Never the
 * error's message, which may repeat what was sent.
 */
export function failureReason(thrown: unknown): string {
  const error = thrown instanceof AggregateError ? thrown.errors[0] : thrown
  if (!(error instanceof Error)) return 'unknown reason'
  return (error as NodeJS.ErrnoException).code ?? error.name
}
