import type { Config } from '../config/schema.ts'

/** The models that may be asked for; the one that answers by default comes first. */
export function modelNames(
  models: ReadonlyMap<string, unknown>,
  { model }: Pick<Config['chat'], 'model'>,
): readonly string[] {
  const all = [...models.keys()]
  const usual = model ?? all[0]
  return [...all.filter((name) => name === usual), ...all.filter((name) => name !== usual)]
}
