import { isSchemaObject as isObject } from '../constrain/schema.ts'

/** What a server says about a failure. */
export interface Said {
  /** One line, at most so long, without control characters. */
  readonly message: string
  readonly code: string
  readonly param: string
}

const longest = 400

/** Reads an error as the different servers write it. Whatever is secret is blotted out, wherever it stands. */
export function saidIn(text: string, secrets: readonly string[]): Said {
  const body = parsed(text)
  const error = isObject(body) ? (body.error ?? body.detail ?? body) : body
  const fields = isObject(error) ? error : { message: typeof error === 'string' ? error : text }
  const line = textOf(fields.message) || textOf(fields.detail) || (isObject(error) ? JSON.stringify(error) : text)
  return {
    message: blotted(line, secrets)
      .replace(/[\s\p{Cc}]+/gu, ' ')
      .trim()
      .slice(0, longest),
    code: typeof fields.code === 'number' ? String(fields.code) : textOf(fields.code) || textOf(fields.type),
    param: textOf(fields.param),
  }
}

/** A text without any of the secrets. */
function blotted(text: string, secrets: readonly string[]): string {
  return secrets.filter((secret) => secret.length > 3).reduce((rest, secret) => rest.replaceAll(secret, '***'), text)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
