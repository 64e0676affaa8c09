import { type Command, Option } from 'commander'
import { clientKinds } from '../../config/import/client-kind.ts'
import type { ExitCode } from '../exit.ts'
import type { Shell } from '../shell.ts'

/** Loads what a command does when it runs. */
export type Action = (
  runner: () => Promise<(shell: Shell, ...given: never[]) => Promise<ExitCode>>,
) => (...given: unknown[]) => Promise<void>

const secrets = (): Option =>
  new Option('--secrets <where>', 'secrets go into files that only you can read, or stay out: you set variables')
    .choices(['file', 'env'])
    .default('file')

/** Each use of an option adds to the ones before. */
export const collect = (value: string, before: readonly string[] = []): readonly string[] => [...before, value]

const cautious = (command: Command): Command =>
  command.option('--dry-run', 'show it and write nothing').option('--yes', 'do not ask')

/** The commands that are about other programs' files: init, import and connect. */
export function clientCommands(program: Command, action: Action, name: string): void {
  cautious(program.command('init'))
    .description("write a configuration with the servers of this machine's clients, or a starter")
    .option('--output <file>', 'where to', 'toolway.yaml')
    .option('--from <client>', 'only the servers of this client; repeat it for several', collect)
    .addOption(secrets())
    .option('--force', 'replace a file that is there')
    .action(action(async () => (await import('./init.ts')).init))

  cautious(program.command('import'))
    .description("add the servers of another program's file to a configuration")
    .argument('<file>', 'of Claude, Cursor, VS Code, Codex, OpenCode, Gemini CLI, Windsurf, Zed, Cline and others')
    .option('--into <file>', 'the configuration to add to', 'toolway.yaml')
    .addOption(secrets())
    .action(action(async () => (await import('./import.ts')).importServers))

  cautious(program.command('connect'))
    .description('point a client at Toolway; without one, list the clients and their state')
    .argument('[client]', clientKinds.join(', '))
    .option('--agent <agent>', 'the agent that it acts as; the default agent otherwise')
    .option('--stdio', 'the client starts Toolway (default)')
    .option('--http', 'the client reaches a Toolway that is serving')
    .option('--with-token', 'with --http: write the token itself into the file of the client')
    .option('--project', "the client's file in this folder, not the user's")
    .option('--replace', "move the client's other servers behind Toolway")
    .option('--remove', 'take our entry out again and leave the rest')
    .option('--undo', 'put the file back as it was, to the byte')
    .option('--force', 'with --undo: even if it has been changed since')
    .addHelpText(
      'after',
      `\nExamples:\n  ${name} connect\n  ${name} connect cursor --replace\n  ${name} connect cursor --undo`,
    )
    .action(action(async () => (await import('./connect.ts')).connect))
}
