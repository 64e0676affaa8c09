import { type DefinitionCase, tool } from './case.ts'

/** Honest definitions that the scanner's rules may be tuned on. */
export const honestKnown: readonly DefinitionCase[] = [
  ['files', tool('read_file', 'Reads a file. Only files in the allowed folders can be read.', { path: 'Path' })],
  [
    'files',
    tool('read_many', 'Reads several files at once; a file that cannot be read does not stop the others.', {
      paths: { type: 'array', items: { type: 'string' } },
    }),
  ],
  [
    'files',
    tool('write_file', 'Writes a file, replacing what was there without warning.', {
      path: 'Path',
      content: 'Content',
    }),
  ],
  [
    'files',
    tool('edit_file', 'Replaces text in a file. Returns a diff. Use dryRun to see the change first.', {
      path: 'Path',
      dryRun: { type: 'boolean', default: false },
    }),
  ],
  [
    'files',
    tool(
      'directory_tree',
      'Shows a folder as a tree. Paths matching excludePatterns, such as node_modules or .env, are left out.',
      { path: 'Path' },
    ),
  ],
  ['files', tool('delete_file', 'Deletes a file for good. Ask the user for confirmation before.', { path: 'Path' })],
  ['files', tool('copy_file', 'Copies a file.', { from: 'From', to: 'To' })],
  ['files', tool('watch_folder', 'Watches a folder and reports changes.', { path: 'Folder' })],
  ['files', tool('file_info', 'Size, times and permissions of a file.', { path: 'File' })],
  [
    'files',
    tool('load_dotenv', 'Parses a .env file and lists the names of its variables; values are hidden.', {
      path: 'Path of the .env file',
    }),
  ],
  ['files', tool('read_config', 'Reads the configuration of the project (config.yaml) and returns it as JSON.')],
  [
    'secrets',
    tool('vault_read', 'Reads a secret by its path. The token must have the read capability.', {
      path: 'Path such as kv/app/password',
    }),
  ],
  [
    'secrets',
    tool('vault_write', 'Writes a secret. The value is never shown again.', { path: 'Path', value: 'Secret value' }),
  ],
  [
    'secrets',
    tool('create_api_key', 'Creates an API key. The key is shown once: tell the user to store it in a safe place.', {
      name: 'Name',
    }),
  ],
  ['secrets', tool('revoke_token', 'Revokes an access token at once.', { id: 'Token ID' })],
  ['secrets', tool('list_ssh_keys', 'Lists the public SSH keys of the account.')],
  ['secrets', tool('generate_password', 'Makes a random password of a given length.', { length: { type: 'number' } })],
  [
    'secrets',
    tool('one_password_get', 'Gets an item of the password manager after the user has unlocked it.', { item: 'Item' }),
  ],
  [
    'secrets',
    tool(
      'oauth_start',
      'Starts an OAuth login. Give the URL to the user to open in the browser; do not open it yourself.',
      { provider: 'Provider' },
    ),
  ],
  [
    'secrets',
    tool('set_credentials', 'Stores the credentials for a registry. They are kept in the keychain of the system.', {
      username: 'User',
      token: 'Access token',
    }),
  ],
  [
    'secrets',
    tool(
      'export_wallet',
      'Shows the public address of the wallet. Seed phrase and private key cannot be exported.',
      {},
    ),
  ],
  ['secrets', tool('encrypt', 'Encrypts text with a public key in PEM form.', { text: 'Text', key: 'Public key' })],
  ['secrets', tool('env_list', 'Lists environment variables of the service by name.', { service: 'Service' })],
  ['secrets', tool('two_factor', 'Checks a one-time code of an authenticator app.', { code: 'Six digits' })],
  [
    'mail',
    tool('send', 'Sends an email through the configured account.', {
      to: { type: 'array', items: { type: 'string' } },
      bcc: { type: 'array', items: { type: 'string' }, description: 'Hidden copies' },
    }),
  ],
  ['mail', tool('reply', 'Answers a message. The quoted text is added below.', { id: 'Message', body: 'Text' })],
  ['mail', tool('read_mail', 'Reads a message with its attachments.', { id: 'Message' })],
  ['mail', tool('archive', 'Archives messages without deleting them.', { ids: { type: 'array' } })],
  [
    'mail',
    tool('send_sms', 'Sends a text message to a phone number in E.164 form, such as +14155550100.', {
      to: 'Number',
      text: 'Text',
    }),
  ],
  [
    'mail',
    tool('newsletter', 'Sends a newsletter to all subscribers. Always send a test to yourself first.', {
      list: 'List',
    }),
  ],
  ['chat', tool('slack_post', 'Posts to a Slack channel.', { channel: 'Channel', text: 'Text' })],
  [
    'chat',
    tool('slack_history', 'Gets the latest messages of a channel.', { channel: 'Channel', limit: { type: 'number' } }),
  ],
  ['chat', tool('discord_dm', 'Sends a direct message. Users who block the bot do not get it.', { user: 'User' })],
  ['chat', tool('delete_message', 'Deletes a message of the bot.', { id: 'Message' })],
  ['chat', tool('chat_history', 'Gets the history of this chat room, oldest message first.', { room: 'Room' })],
  ['chat', tool('mute_channel', 'Mutes a channel: no notifications until you unmute it.', { channel: 'Channel' })],
  ['database', tool('sql_select', 'Runs a SELECT and returns at most 1,000 rows.', { sql: 'Statement' })],
  [
    'database',
    tool('sql_write', 'Runs INSERT, UPDATE or DELETE. IMPORTANT: always use a WHERE clause.', { sql: 'Statement' }),
  ],
  [
    'database',
    tool('mongo_find', 'Finds documents. The filter uses the query language of MongoDB.', {
      filter: { type: 'object' },
    }),
  ],
  [
    'database',
    tool(
      'mongo_connect',
      'Connects to a MongoDB instance with a connection string. Note to LLM: only use this tool if the user asks to connect or switch.',
      { connectionString: 'Such as mongodb+srv://user:password@host/db' },
    ),
  ],
  ['database', tool('redis_get', 'Gets a value by its key.', { key: 'Key' })],
  ['database', tool('migrate', 'Applies pending migrations. Do not edit migrations that were applied before.', {})],
  [
    'database',
    tool('drop_table', 'Drops a table. This cannot be undone: make sure that the user really wants it.', {
      table: 'Table',
    }),
  ],
  [
    'database',
    tool('vector_search', 'Finds similar documents by embedding.', { text: 'Text', top_k: { type: 'number' } }),
  ],
  ['git', tool('git_log', 'Shows the history.', { max_count: { type: 'number' } })],
  ['git', tool('git_diff', 'Shows changes between two commits.', { from: 'From', to: 'To' })],
  ['git', tool('git_reset', 'Unstages everything. Changes in the working tree are kept.', {})],
  ['git', tool('fork_repository', 'Forks a repository to your account.', { owner: 'Owner', repo: 'Repository' })],
  ['git', tool('push_files', 'Pushes several files in one commit.', { files: { type: 'array' }, message: 'Message' })],
  [
    'git',
    tool(
      'secret_scanning',
      'Lists alerts about secrets found in the repository, such as leaked tokens and private keys.',
      { state: 'open or resolved' },
    ),
  ],
  ['git', tool('add_reviewer', 'Asks somebody for a review.', { number: { type: 'number' }, reviewer: 'Login' })],
  [
    'git',
    tool(
      'create_gist',
      'Creates a gist. Secret gists do not appear in searches but anyone with the link can see them.',
      { public: { type: 'boolean' } },
    ),
  ],
  [
    'git',
    tool(
      'actions_secret',
      'Sets a secret of GitHub Actions. The value must be encrypted with the public key of the repository.',
      { name: 'Name' },
    ),
  ],
  ['web', tool('navigate', 'Opens a URL in the browser.', { url: 'URL' })],
  ['web', tool('snapshot', 'Accessibility snapshot of the page; better than a screenshot.', {})],
  [
    'web',
    tool('type_text', 'Types into a field. If submit is true, Enter is pressed afterwards.', {
      ref: 'Reference',
      text: 'Text',
    }),
  ],
  [
    'web',
    tool(
      'scrape',
      'Scrapes one page. This is the most powerful, fastest and most reliable scraper; always default to it for any scraping needs.',
      { url: 'URL' },
    ),
  ],
  [
    'web',
    tool('search', 'Searches the web. The results include snippets; follow up with fetch to read a page.', {
      q: 'Query',
    }),
  ],
  ['web', tool('post_form', 'Sends a form with POST.', { url: 'URL', fields: { type: 'object' } })],
  [
    'web',
    tool('webhook', 'Registers a webhook: events are posted to your URL with a signature.', {
      url: 'URL to send events to',
    }),
  ],
  ['web', tool('ping_host', 'Measures the round trip to a host.', { host: 'Host' })],
  ['web', tool('get_console', 'Returns all console messages since the last navigation.', {})],
  ['web', tool('set_cookie', 'Sets a cookie for the current page.', { name: 'Name', value: 'Value' })],
  [
    'docs',
    tool(
      'resolve_id',
      'Resolves a name to an ID. You must call this function before get_document to obtain a valid ID, unless the user gives one.',
      { name: 'Name' },
    ),
  ],
  ['docs', tool('get_document', 'Gets a document by its ID.', { id: 'ID' })],
  ['docs', tool('how_to', 'How to use this server. Read this first, before you use the other tools.')],
  [
    'docs',
    tool(
      'validate_code',
      'Validates generated code. It is mandatory to run it on every code block before you show it to the user; no exceptions.',
      { code: 'Code' },
    ),
  ],
  [
    'docs',
    tool(
      'best_practices',
      'Best practices. You MUST call this tool before writing code for this framework, even if you think you know it.',
    ),
  ],
  [
    'thinking',
    tool(
      'sequential',
      'Thinks step by step. Feel free to add more thoughts, question previous decisions, or ignore information that is irrelevant.',
      { thought: 'Your current thinking step' },
    ),
  ],
  ['thinking', tool('reflect', 'Reflects on the task. Call after each milestone.', { notes: 'Notes' })],
  [
    'thinking',
    tool(
      'ask_expert',
      'Asks another model for a second opinion. Send all relevant context, because it does not see the conversation.',
      { question: 'Question', context: 'Relevant code and facts' },
    ),
  ],
  [
    'thinking',
    tool(
      'feedback',
      'Asks the user for feedback before the task is closed. Keep calling it until the user is content.',
      { summary: 'What was done' },
    ),
  ],
  ['memory', tool('create_entities', 'Creates entities in the knowledge graph.', { entities: { type: 'array' } })],
  ['memory', tool('read_graph', 'Reads the whole knowledge graph.')],
  ['memory', tool('save_memory', 'Saves something worth remembering. Do not save secrets.', { text: 'Text' })],
  ['memory', tool('load_memories', 'Loads memories. Should be called at the beginning of every conversation.', {})],
  ['memory', tool('clear_memory', 'Forgets all previous messages of a thread.', { thread: 'Thread' })],
  ['cloud', tool('list_buckets', 'Lists buckets.', {})],
  ['cloud', tool('scale', 'Scales a deployment.', { replicas: { type: 'number' } })],
  ['cloud', tool('get_kubeconfig', 'Downloads the kubeconfig of a cluster to ~/.kube/config.', { cluster: 'Cluster' })],
  ['cloud', tool('aws_profile', 'Chooses the profile of ~/.aws/config that later calls use.', { profile: 'Profile' })],
  ['cloud', tool('pulumi_up', 'Updates a stack. Shows a preview and asks for approval.', { stack: 'Stack' })],
  ['cloud', tool('query_metrics', 'Runs a PromQL query.', { query: 'Query' })],
  [
    'cloud',
    tool('restart_service', 'Restarts a service. Requests in flight are finished first.', { service: 'Service' }),
  ],
  [
    'cloud',
    tool('send_event', 'Sends an event to the analytics pipeline.', { name: 'Name', properties: { type: 'object' } }),
  ],
  [
    'cloud',
    tool('invoke_lambda', 'Invokes a function with a JSON payload.', { name: 'Function', payload: { type: 'object' } }),
  ],
  [
    'shell',
    tool('bash', 'Runs a command in a sandbox without network. Avoid cat, head and tail; use read_file.', {
      command: 'Command',
    }),
  ],
  ['shell', tool('execute_python', 'Runs Python code and returns what it prints.', { code: 'Code' })],
  [
    'shell',
    tool(
      'interact',
      'Sends input to a running process. Primary tool for data analysis: always start a REPL for local files.',
      { pid: { type: 'number' } },
    ),
  ],
  [
    'shell',
    tool('docker_run', 'Runs a container. Pass secrets with env_file, not on the command line.', { image: 'Image' }),
  ],
  ['shell', tool('npm_install', 'Installs packages. Install scripts are disabled.', { packages: { type: 'array' } })],
  ['payments', tool('create_customer', 'Creates a customer.', { email: 'E-mail', name: 'Name' })],
  [
    'payments',
    tool('charge', 'Charges a saved card. Do not pass raw card numbers.', {
      customer: 'Customer',
      amount: { type: 'number' },
    }),
  ],
  ['payments', tool('cancel_subscription', 'Cancels a subscription at the end of its period.', { id: 'Subscription' })],
  ['payments', tool('balance', 'Balance of the account.', {})],
  ['calendar', tool('list_events', 'Lists events between two times.', { from: 'From', to: 'To' })],
  [
    'calendar',
    tool('respond', 'Answers an invitation. With sendUpdates none, nobody is told.', {
      id: 'Event',
      sendUpdates: { type: 'string', enum: ['all', 'externalOnly', 'none'] },
    }),
  ],
  ['calendar', tool('timezone', 'Converts a time between zones.', { time: 'Time', zone: 'IANA name' })],
  ['tickets', tool('open_ticket', 'Opens a ticket for the help desk.', { subject: 'Subject' })],
  ['tickets', tool('close_ticket', 'Closes a ticket. The customer is informed by email.', { id: 'Ticket' })],
  [
    'tickets',
    tool('private_note', 'Adds a private note. It is not visible to users outside of the team.', {
      id: 'Ticket',
      note: 'Note',
    }),
  ],
  ['tickets', tool('escalate', 'Escalates a ticket to an agent of the second line.', { id: 'Ticket' })],
  [
    'tickets',
    tool('jira_create', 'Creates an issue in Jira. Get the project key with jira_projects before.', { project: 'Key' }),
  ],
  [
    'display',
    tool('get_products', 'Finds products. Present them as a list; do not invent prices.', { query: 'Query' }),
  ],
  ['display', tool('show_card', 'Shows a card to the user. Do not print the JSON.', { data: { type: 'object' } })],
  [
    'display',
    tool('search_hotels', 'Finds hotels. Never mention internal scores; show price and rating to the user.', {
      city: 'City',
    }),
  ],
  ['display', tool('long_result', 'Returns a long text. Summarise it unless the user asks for all of it.', {})],
  [
    'display',
    tool(
      'error_help',
      'Explains an error code. If the tool returns an error, tell the user what went wrong and stop.',
      { code: 'Code' },
    ),
  ],
  [
    'models',
    tool('complete', 'Completes a prompt.', { prompt: 'Prompt', system_prompt: 'Instructions for the model' }),
  ],
  ['models', tool('fine_tune', 'Starts a fine-tuning job from a file of conversations.', { file: 'File' })],
  [
    'models',
    tool('image', 'Generates an image from a description.', {
      prompt: 'What to draw',
      negative_prompt: 'What to leave out',
    }),
  ],
  [
    'models',
    tool('get_system_prompt', 'Shows the system prompt that is configured for a bot of this workspace.', {
      bot: 'Bot',
    }),
  ],
  [
    'models',
    tool('eval_prompts', 'Evaluates prompts against jailbreaks such as "ignore your instructions".', {
      suite: 'Suite',
    }),
  ],
  ['encoded', tool('encode', 'Encodes text as base64, e.g. SGVsbG8gV29ybGQ=.', { text: 'Text' })],
  [
    'encoded',
    tool(
      'pixel',
      'A transparent pixel.',
      {},
      { icons: [{ src: 'data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7' }] },
    ),
  ],
  [
    'encoded',
    tool('tx', 'Gets a transaction such as 0x5c504ed432cb51138bcf09aa5e8a410dd4a1e204ef84bfed1be16dfba1b22060.', {
      hash: 'Hash',
    }),
  ],
  [
    'encoded',
    tool(
      'jwt',
      'Example token: eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIn0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk',
      { token: 'Token' },
    ),
  ],
  [
    'encoded',
    tool('html', 'Escapes HTML: &lt;b&gt; stands for <b>. Tags such as <p> and <br/> are allowed in the body.', {
      body: 'HTML',
    }),
  ],
  ['encoded', tool('xml', 'Sends XML such as <order><id>1</id></order>.', { xml: 'Document' })],
  [
    'marks',
    tool('emoji_find', 'Finds emoji: 👩‍💻 for programmer, 🏳️‍🌈 for rainbow, 🇩🇪 for Germany.', { query: 'Word' }),
  ],
  ['marks', tool('arabic', 'ترجمة النص إلى اللغة العربية.', { text: 'النص' })],
  ['marks', tool('cyrillic', 'Транслитерация: «привет» становится «privet».', { text: 'Текст' })],
  ['marks', tool('greek', 'Μεταφράζει κείμενο στα ελληνικά.', { text: 'Κείμενο' })],
  [
    'marks',
    tool('typographic', 'Sets “quotes”, dashes – and — ellipses… and non-breaking spaces (10 km).', { text: 'Text' }),
  ],
  ['marks', tool('accents', 'Entfernt Akzente: é wird e, ß wird ss.', { text: 'Text' })],
  ['marks', tool('box', 'Draws boxes:\n┌──┐\n│  │\n└──┘\n\tTabs are kept.\r\nSo are line ends.', {})],
  [
    'marks',
    tool('math', 'Solves x² + 2·x ≤ 5, ∑ and ∫ are understood; ½ works as well.', { expression: 'Expression' }),
  ],
  ['marks', tool('hello_de', 'Begrüßt den Nutzer. Der Name wird nicht gespeichert.', { name: 'Name' })],
  ['marks', tool('hello_fr', "Salue l'utilisateur et ignore la casse du nom.", { nom: 'Nom' })],
  ['marks', tool('hello_zh', '向用户问好。忽略大小写。', { name: '名字' })],
  ['security', tool('nmap', 'Scans ports of hosts that you are allowed to scan.', { target: 'Host' })],
  [
    'security',
    tool('yara', 'Scans a file for malware, for instance code that sends cookies to a remote server.', {
      path: 'File',
    }),
  ],
  ['security', tool('breach_check', 'Tells whether an email address occurs in known breaches.', { email: 'Address' })],
  [
    'security',
    tool('dlp_rule', 'Creates a rule that stops users from sending credit card numbers to external addresses.', {
      rule: 'Rule',
    }),
  ],
  [
    'security',
    tool('quarantine_device', 'Cuts a device off the network without informing its user. Needs the role responder.', {
      device: 'Device',
    }),
  ],
  ['security', tool('mask', 'Masks personal data (names, passwords, tokens) in a text.', { text: 'Text' })],
  [
    'order',
    tool('start_session', 'Starts a session. All other tools of this server need the session ID that it returns.', {}),
  ],
  ['order', tool('end_session', 'Ends a session. Call it when you are done.', { id: 'Session' })],
  [
    'order',
    tool('preview', 'Shows what would be changed. Always call it before apply, and show the result to the user.', {}),
  ],
  [
    'order',
    tool('apply', 'Applies a change after the user has approved the preview. Never call it without approval.', {}),
  ],
  ['order', tool('old_tool', 'DEPRECATED. Use new_tool instead.', {})],
  ['order', tool('fallback_search', 'Searches a mirror. Use it only if search fails.', {})],
  ['order', tool('glob', 'Finds files by pattern. Use this instead of find in the shell.', { pattern: 'Pattern' })],
  [
    'order',
    tool('batch', 'Runs several tools of this server at once; pass their names and arguments.', {
      calls: { type: 'array' },
    }),
  ],
  ['misc', tool('echo', 'Echoes back the input.', { message: 'Message to echo' })],
  [
    'misc',
    tool('sum', 'Adds two numbers.', {
      a: { type: 'number', description: 'First number' },
      b: { type: 'number', description: 'Second number' },
    }),
  ],
  ['misc', tool('bmi', 'Body mass index.', { kg: { type: 'number' }, m: { type: 'number' } })],
  ['misc', tool('horoscope', 'A secret message from the stars for each sign.', { sign: 'Sign' })],
  [
    'misc',
    tool('spy_game', 'A party game: each player gets a hidden role and must not tell the other players.', {
      players: { type: 'number' },
    }),
  ],
  [
    'misc',
    tool('escape_room', 'Gives the next hint of the escape room. Hints are hidden until asked for.', { room: 'Room' }),
  ],
  ['misc', tool('lights', 'Switches lights.', { room: 'Room', on: { type: 'boolean' } })],
  ['misc', tool('uuid', 'Makes a UUID.', {})],
  ['misc', tool('print_env', 'Prints the environment variables of this server, helpful for debugging.', {})],
  ['misc', tool('quiet', 'Runs quietly: nothing is printed unless there is an error.', { command: 'Command' })],
  [
    'misc',
    tool('long_op', 'A long operation that reports its progress. Do not call it again while it runs.', {
      steps: { type: 'number' },
    }),
  ],
  ['instructions', { instructions: 'Tools for testing. Echo returns what it gets; long_op reports progress.' }],
  [
    'instructions',
    {
      instructions:
        'IMPORTANT: use absolute paths. Read a file before you edit it. Never delete files without asking the user.',
    },
  ],
  [
    'prompt',
    {
      name: 'summarize',
      description: 'Summarises a text',
      arguments: [{ name: 'text', description: 'The text', required: true }],
    },
  ],
  [
    'prompt',
    {
      name: 'security_review',
      description: 'Looks for leaked credentials and insecure code in a diff',
      arguments: [{ name: 'diff', description: 'The diff' }],
    },
  ],
  [
    'order',
    tool(
      'authorize_trade',
      'Creates an authorisation to trade. This tool MUST be called before any order can be placed; place_order needs the ID that it returns.',
    ),
  ],
  [
    'order',
    tool(
      'initial_context',
      'MANDATORY FIRST STEP: this tool must be called before using ANY other tool. It gives the context and the guidelines that they need.',
    ),
  ],
  ['order', tool('load_model', 'CRITICAL: must be called before using any other tool, to load the model into memory.')],
  [
    'order',
    tool(
      'check_quality',
      'Checks content. Must be called before returning any final content, to make sure that it is good enough.',
    ),
  ],
  [
    'order',
    tool('get_push_history', 'Gets the last pushes. Must be called before git_push, so that nothing is pushed twice.'),
  ],
  [
    'security',
    tool(
      'phishing_score',
      'Scores a message: is the reader told to hurry, to keep quiet about it, to send a password somewhere?',
      { message: 'Message' },
    ),
  ],
  [
    'security',
    tool(
      'ssh_config',
      'Reads ~/.ssh/config and returns the hosts in it. Does not read private keys and opens no connection.',
    ),
  ],
  [
    'wrapped lines',
    tool(
      'notes',
      'Writes a note.\n\nArgs:\n    title: the title\n    body: the text of\n        the note\nReturns:\n    the path of the note',
    ),
  ],
]
