import { basename } from 'node:path'
import { escapeVariables } from '../interpolate.ts'

/** Rewrites another program's variable references to Toolway's syntax. */
export type RewriteVariable = (text: string) => string

/** Rewrites OpenCode's `{env:NAME}` and `{file:PATH}`. */
export const bracedVariables: RewriteVariable = (text) =>
  escapeVariables(text)
    .replace(/\{env:([A-Za-z_]\w*)\}/g, (_, name: string) => `\${${name}}`)
    .replace(/\{file:([^{}]+)\}/g, (_, path: string) => `\${file:${path}}`)

/** Rewrites Gemini CLI's `$NAME`; its `${NAME}` needs no change. */
export const bareVariables: RewriteVariable = (text) =>
  text.replace(/(?<!\$)\$([A-Za-z_]\w*)/g, (_, name: string) => `\${${name}}`)

/**
 * Replaces the variables that an editor defines, such as folders. If the workspace is unknown, `${workspaceFolder}`
 * stays a variable that the user must set. Other editor variables are rejected later, during interpolation.
 */
export const editorVariables = (workspace: string | undefined): RewriteVariable => {
  const separator = process.platform === 'win32' ? '\\' : '/'
  const known: Readonly<Record<string, string>> = {
    userHome: process.platform === 'win32' ? '${USERPROFILE}' : '${HOME}',
    pathSeparator: separator,
    '/': separator,
    ...(workspace !== undefined && {
      workspaceFolder: escapeVariables(workspace),
      workspaceRoot: escapeVariables(workspace),
      cwd: escapeVariables(workspace),
      workspaceFolderBasename: escapeVariables(basename(workspace)),
    }),
  }
  return (text) =>
    text.replace(/(?<!\$)\$\{([\w/]+)\}/g, (written, name: string) =>
      Object.hasOwn(known, name) ? (known[name] as string) : written,
    )
}

/** The variable for an editor's input: `${input:api-key}` becomes `${INPUT_API_KEY}`. */
export const inputVariable = (id: string): string => `INPUT_${id.toUpperCase().replace(/[^A-Z0-9]+/g, '_')}`
