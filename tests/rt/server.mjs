// Request Tracker 5 from Debian, as a process of its own: a SQLite database in a temporary folder, a
// custom field "OperationKey", a bot with its rights and its token. nginx gives it TLS.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { Program, eventually, freePort, run } from '../e2e/util.mjs';
import { Nginx } from '../real/nginx.mjs';

const name = 'rt.example.com';

// What config/cookbook/request_tracker.yaml asks for, in RT's own language.
const setup = `
use strict; use warnings;
use lib '/usr/share/request-tracker5/lib';
use RT -init;
my $queue = RT::Queue->new(RT->SystemUser); $queue->Load('General');
my $field = RT::CustomField->new(RT->SystemUser);
my ($ok, $why) = $field->Create(Name => 'OperationKey', Type => 'FreeformSingle', LookupType => 'RT::Queue-RT::Ticket');
die $why unless $ok;
($ok, $why) = $field->AddToObject($queue); die $why unless $ok;
my $user = RT::User->new(RT->SystemUser);
($ok, $why) = $user->Create(Name => 'bot', EmailAddress => 'bot@example.com', Privileged => 1); die $why unless $ok;
for my $right (qw(SeeQueue ShowTicket CreateTicket SeeCustomField SetInitialCustomField)) {
  ($ok, $why) = $user->PrincipalObj->GrantRight(Right => $right, Object => $queue); die "$right: $why" unless $ok;
}
my $token = RT::AuthToken->new(RT->SystemUser);
my ($id, $message, $secret) = $token->Create(Owner => $user->id, Description => 'outboxd'); die $message unless $id;
print "TOKEN=$secret\\n";
`;

export class RequestTracker {
  lose = 0;  // that many answers to a POST will be lost

  static async start(dir, authority, { maySetField = true } = {}) {
    const rt = new RequestTracker();
    rt.dir = path.join(dir, 'rt');
    mkdirSync(rt.dir);
    rt.port = await freePort();
    if (!existsSync('/usr/share/request-tracker5/libexec/rt-server')) throw new Error('no Request Tracker here; ./dev test-rt installs it');
    const config = path.join(rt.dir, 'RT_SiteConfig.pm');
    writeFileSync(config, `Set($rtname, 'e2e');
Set($Organization, 'example.com');
Set($WebDomain, '${name}');
Set($WebPort, 443);
Set($WebBaseURL, 'https://${name}');
Set($WebURL, 'https://${name}/');
Set($DatabaseType, 'SQLite');
Set($DatabaseName, '${rt.dir}/rt.sqlite');
Set($LogToSTDERR, 'warning');
Set($LogToSyslog, undef);
Set($MailCommand, 'testfile');
1;
`);
    rt.env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: rt.dir, LANG: 'C.UTF-8', RT_SITE_CONFIG: config, RT_SITE_CONFIG_DIR: rt.dir, TMPDIR: rt.dir };
    await rt.#program('/usr/sbin/rt-setup-database-5', ['--action', 'init']);
    writeFileSync(path.join(rt.dir, 'setup.pl'), maySetField ? setup : setup.replace(' SetInitialCustomField', ''));
    const { out } = await rt.#program('/usr/bin/perl', [path.join(rt.dir, 'setup.pl')]);
    rt.token = /^TOKEN=(\S+)$/m.exec(out)[1];
    rt.program = new Program('/usr/share/request-tracker5/libexec/rt-server', ['--host', '127.0.0.1', '--port', String(rt.port)], { env: rt.env, cwd: rt.dir });
    await eventually('Request Tracker answers', async () => {
      if (rt.program.ended) throw new Error(rt.program.output.slice(-2000));
      return (await rt.ask('/REST/2.0/rt')).status === 200;
    }, 120_000);
    await rt.#gate();
    rt.nginx = await Nginx.start(dir, { ...authority.issue([name]), upstream: `http://127.0.0.1:${rt.gate.address().port}` });
    return rt;
  }

  // Between nginx and RT: what RT answers to a POST can be lost, so nginx says 502.
  async #gate() {
    this.gate = net.createServer((front) => {
      const back = net.connect(this.port, '127.0.0.1');
      let post = false;
      for (const [one, other] of [[front, back], [back, front]]) {
        one.on('error', () => {});
        one.on('close', () => other.destroy());
      }
      front.on('data', (data) => { post ||= data.toString('latin1').startsWith('POST '); back.write(data); });
      back.on('data', (data) => {
        if (!post || this.lose === 0) return front.write(data);
        --this.lose;
        return front.destroy();
      });
    });
    await new Promise((resolve) => this.gate.listen(0, '127.0.0.1', resolve));
  }

  async #program(file, args) {
    const done = await run(file, args, { env: this.env, cwd: this.dir, timeout: 180_000 });
    if (done.code !== 0) throw new Error(`${file}: ${done.text.slice(-3000)}`);
    return done;
  }

  async ask(target) {
    const answer = await fetch(`http://127.0.0.1:${this.port}${target}`, { headers: { Authorization: `token ${this.token}` }, signal: AbortSignal.timeout(60_000) });
    return { status: answer.status, body: answer.headers.get('content-type')?.includes('json') ? await answer.json() : await answer.text() };
  }

  // Tickets with this subject, by RT's own search.
  async effects(subject) {
    const query = encodeURIComponent(`Subject = '${subject}'`);
    return (await this.ask(`/REST/2.0/tickets?query=${query}&fields=Subject,Creator`)).body.items;
  }

  async stop() {
    await this.nginx?.stop();
    this.gate?.close();
    await this.program?.stop('SIGTERM');
  }
}
