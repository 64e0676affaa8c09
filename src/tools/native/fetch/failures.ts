import { ToolwayError } from '../../../core/errors.ts'

/** Something went wrong between here and a host; said without the path, which may hold a secret. */
export const cannotReach = ({ host }: URL, thrown: unknown): ToolwayError =>
  new ToolwayError(
    'SERVER_UNAVAILABLE',
    `${host} could not be read (${reason(thrown)}). Check the URL, or try again later.`,
    { cause: thrown },
  )

/** A code such as ECONNREFUSED; a name with several addresses fails with one error for each. */
function reason(thrown: unknown): string {
  const error = thrown instanceof AggregateError ? thrown.errors[0] : thrown
  if (!(error instanceof Error)) return 'unknown reason'
  return (error as NodeJS.ErrnoException).code ?? error.message
}
