import { basename } from 'node:path'

/** Puts a text with another program's variables into our spelling. */
export type RewriteVariable = (text: string) => string

/** A text in which `${` means nothing to the program that reads it. */
const literal: RewriteVariable = (text) => text.replaceAll('${', () => '$${')

/** No variables at all: Codex and Zed hand on what is written, to a shell perhaps. */
export const withoutVariables = literal

/** `{env:NAME}` and `{file:PATH}`, as OpenCode writes them. */
export const bracedVariables: RewriteVariable = (text) =>
  literal(text)
    .replace(/\{env:([A-Za-z_]\w*)\}/g, (_, name: string) => `\${${name}}`)
    .replace(/\{file:([^{}]+)\}/g, (_, path: string) => `\${file:${path}}`)

/** `$NAME` beside `${NAME}`, as Gemini CLI reads it. */
export const bareVariables: RewriteVariable = (text) =>
  text.replace(/(?<!\$)\$([A-Za-z_]\w*)/g, (_, name: string) => `\${${name}}`)

/**
 * What an editor fills in by itself: folders and the like. Without a workspace its folder stays a variable, which
 * somebody has to set; the rest is refused where it is used, with a way out.
 */
export const editorVariables = (workspace: string | undefined): RewriteVariable => {
  const separator = process.platform === 'win32' ? '\\' : '/'
  const known: Readonly<Record<string, string>> = {
    userHome: process.platform === 'win32' ? '${USERPROFILE}' : '${HOME}',
    pathSeparator: separator,
    '/': separator,
    ...(workspace !== undefined && {
      workspaceFolder: literal(workspace),
      workspaceRoot: literal(workspace),
      cwd: literal(workspace),
      workspaceFolderBasename: literal(basename(workspace)),
    }),
  }
  return (text) =>
    text.replace(/(?<!\$)\$\{([\w/]+)\}/g, (written, name: string) =>
      Object.hasOwn(known, name) ? (known[name] as string) : written,
    )
}

/** The variable that takes the place of what an editor would ask for: `${input:api-key}` is `${INPUT_API_KEY}`. */
export const inputVariable = (id: string): string => `INPUT_${id.toUpperCase().replace(/[^A-Z0-9]+/g, '_')}`
