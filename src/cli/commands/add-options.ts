import { type Command, Option } from 'commander'
import { type Action, collect } from './connect-options.ts'

/** The commands that put one server into the configuration and take it out again. */
export function addCommands(program: Command, action: Action, name: string): void {
  program
    .command('add')
    .description('add a server to the configuration (--config: to which file)')
    .argument('<name>', 'what to call it: letters, digits and _ . -')
    .argument('<target...>', 'its URL, or -- and the command that starts it, with its arguments')
    .option('-e, --env <KEY=VALUE>', 'a variable for the command; repeat it for several', collect)
    .option('-H, --header <header>', 'a header for the URL, as "Name: value"; repeat it for several', collect)
    .addOption(
      new Option('-t, --transport <transport>', 'how to reach the URL (default: as it looks)').choices([
        'http',
        'sse',
        'stdio',
      ]),
    )
    .option('--force', 'replace the server of that name')
    .option('--dry-run', 'show it and write nothing')
    .addHelpText(
      'after',
      `
Examples:
  ${name} add files -- npx -y @modelcontextprotocol/server-filesystem .
  ${name} add docs https://mcp.example.com/mcp --header "Authorization: Bearer $DOCS_TOKEN"`,
    )
    .action(action(async () => (await import('./add.ts')).addServer))

  program
    .command('remove')
    .description('take a server out of the configuration (--config: out of which file)')
    .argument('<name>', 'its name in the file')
    .option('--dry-run', 'show it and write nothing')
    .action(action(async () => (await import('./remove.ts')).removeServer))
}
