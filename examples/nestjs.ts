/** A shop as a provider of a NestJS application, which closes it. */
import 'reflect-metadata';
import {
  Controller,
  Headers,
  HttpCode,
  Inject,
  Module,
  type OnApplicationShutdown,
  Param,
  Post,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { open, type PurchaseOutcome, type Shop } from '@stockade-engine/stockade';

const SHOP = Symbol('shop');

@Controller('buy')
class BuyController {
  readonly #shop: Shop;

  constructor(@Inject(SHOP) shop: Shop) {
    this.#shop = shop;
  }

  @Post(':saleId')
  @HttpCode(201)
  buy(@Param('saleId') saleId: string, @Headers('x-buyer-id') buyerId = ''): Promise<PurchaseOutcome> {
    return this.#shop.purchase({ saleId, buyerId });
  }
}

async function openShop(): Promise<Shop> {
  const shop = await open({ redisUrl: process.env.REDIS_URL, databaseUrl: process.env.DATABASE_URL });
  const { sales } = await shop.sales.list();
  if (sales.length === 0) await shop.sales.create({ id: 'front-row', stock: 100 });
  return shop;
}

@Module({ controllers: [BuyController], providers: [{ provide: SHOP, useFactory: openShop }] })
class AppModule implements OnApplicationShutdown {
  readonly #shop: Shop;

  constructor(@Inject(SHOP) shop: Shop) {
    this.#shop = shop;
  }

  onApplicationShutdown(): Promise<void> {
    return this.#shop.close();
  }
}

const app = await NestFactory.create(AppModule, { logger: false });
app.enableShutdownHooks();
await app.listen(Number(process.env.PORT ?? 3000));
console.log('ready', app.getHttpServer().address());
