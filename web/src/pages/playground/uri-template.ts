import { memberOf } from '../../schema-form/path.ts'

const expression = /\{([+#./;?&]?)([^{}]+)\}/g

/** The names of a URI template's variables, without duplicates. */
export function variablesOf(template: string): readonly string[] {
  const names = [...template.matchAll(expression)].flatMap(([, , list = '']) => list.split(',').map(nameOf))
  return [...new Set(names)]
}

/** `name*` and `name:3` are variables called `name`. */
const nameOf = (variable: string): string => variable.replace(/\*$|:\d+$/, '')

interface Style {
  readonly first: string
  readonly separator: string
  readonly named: boolean
  readonly reserved: boolean
}

const simple: Style = { first: '', separator: ',', named: false, reserved: false }
const styles: Readonly<Record<string, Style>> = {
  '+': { ...simple, reserved: true },
  '#': { ...simple, first: '#', reserved: true },
  '.': { ...simple, first: '.', separator: '.' },
  '/': { ...simple, first: '/', separator: '/' },
  ';': { ...simple, first: ';', separator: ';', named: true },
  '?': { ...simple, first: '?', separator: '&', named: true },
  '&': { ...simple, first: '&', separator: '&', named: true },
}

/** Fills in a URI template as RFC 6570 defines it, with text values. Empty variables are left out. */
export const expandTemplate = (template: string, values: Readonly<Record<string, string>>): string =>
  template.replace(expression, (_, operator: string, list: string) => {
    const { first, separator, named, reserved } = styles[operator] ?? simple
    const parts = list.split(',').flatMap((variable) => {
      const name = nameOf(variable)
      const length = /:(\d+)$/.exec(variable)?.[1]
      const value = (memberOf(values, name) ?? '').slice(0, length === undefined ? undefined : Number(length))
      if (value === '') return []
      const text = reserved ? encodeURI(value).replaceAll('%25', '%') : encodeStrictly(value)
      return [named ? `${name}=${text}` : text]
    })
    return parts.length === 0 ? '' : first + parts.join(separator)
  })

const encodeStrictly = (text: string): string =>
  encodeURIComponent(text.toWellFormed()).replace(
    /[!'()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  )
