import { join } from 'node:path'
import { createRedactor, type Redactor } from '../../audit/redact/redactor.ts'
import { secretsOf } from '../../audit/redact/secrets.ts'
import { oneLine, printable } from '../width.ts'
import type { Checked } from './finding.ts'
import { privateFile } from './private-file.ts'
import type { Situation } from './situation.ts'

/** Knows the secrets of a configuration, the kept token among them; without one, only what looks like a secret. */
export async function redactorFor({
  understood: config,
  secrets,
}: Pick<Situation, 'understood' | 'secrets'>): Promise<Redactor> {
  if (config === undefined) return createRedactor({ secrets: [], keys: [] })
  const path = join(config.stores.common, 'token')
  const { text } = await privateFile({ path, shown: path, what: 'the token' })
  const known = secretsOf(config, [...secrets, text ?? ''])
  return createRedactor({ secrets: known, keys: config.audit.redact })
}

/**
 * Takes known secrets, and what would act on a terminal, out of everything that is told. What servers say has been
 * through more than that already; a remedy that names `token:` must stay as it is.
 */
export const concealer =
  ({ known }: Redactor) =>
  ({ message, remedy, details, ...rest }: Checked): Checked => {
    const clean = (text: string) => String(known(text) ?? '')
    return {
      ...rest,
      message: oneLine(clean(message)),
      ...(remedy !== undefined && { remedy: printable(clean(remedy)) }),
      ...(details !== undefined && { details: details.map((line) => oneLine(clean(line))) }),
    }
  }
